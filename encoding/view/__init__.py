"""The routing view: which host runs which task, in full, as a delta, or as a reference."""

from encoding.primitives import ViewForm
from encoding.view.codec import decode_reference, decode_view, encode_reference, encode_view
from encoding.view.columns import (
    View,
    ViewReference,
    build_view,
    is_viewable,
    partitions_by_host,
    view_checksum,
    view_reference,
)
from encoding.view.delta import (
    ViewForms,
    ViewMismatch,
    apply_delta,
    choose_view_form,
    encode_delta,
    encode_view_forms,
)

__all__ = [
    "View",
    "ViewForm",
    "ViewForms",
    "ViewMismatch",
    "ViewReference",
    "apply_delta",
    "build_view",
    "choose_view_form",
    "decode_reference",
    "decode_view",
    "encode_delta",
    "encode_reference",
    "encode_view",
    "encode_view_forms",
    "is_viewable",
    "partitions_by_host",
    "view_checksum",
    "view_reference",
]
