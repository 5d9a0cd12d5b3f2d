"""Words: figures of speech and pronouns that names, pages, messages and comments do not contain."""

import ast
import re

from tests.project.checkout import NAMES, ROOT

FORBIDDEN = {
    "storeys?": "layer",
    "dice": "random generator",
    "mouths?": "module, output",
    "keepers?": "owner",
    "crews?": "members",
    "hero(?:es)?": "member",
    "surroundings": "environment",
    "nobody said": "not configured",
    "makes? no sense": "is invalid",
    "whoever": "the member that",
    "some(?:body|one)": "a member",
    "everybody": "all members",
    "anybody": "any member",
}


def pattern(word):
    """A word of the table, alone or between underscores: `Crew`, `nobody_said`."""
    return re.compile(rf"(?<![a-z])(?:{word.replace(' ', '[ _]')})(?![a-z])", re.IGNORECASE)


PATTERNS = {word: pattern(word) for word in FORBIDDEN}
ANY = pattern("|".join(FORBIDDEN))
PRONOUNS = {"one", "said", "told", "mine", "theirs", "there", "comes", "it"}
"""No variable, parameter, field, function or class has one of these names."""
SPEECH = {"said", "told", "mine", "theirs"}
"""No such name has one of these parts, except those of tests, which are sentences."""
# To parse only files whose code can have such a name: all files take 8 s.
STRINGS = re.compile(
    r"""(?s)\"{3}(?:\\.|.)*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*"""
)
CANDIDATE = re.compile(
    rf"(?i)(?<![a-z_0-9])_*(?:{'|'.join(PRONOUNS)})_*(?![a-z_0-9])"
    rf"|(?<![a-z])(?:{'|'.join(SPEECH)})|(?-i:{'|'.join(part.title() for part in SPEECH)})"
)
THIS = "tests/project/test_words.py"
# File -> parts that quote former names: the section "Renamed", and lines such as "old" -> "new".
EXCEPTIONS = {"CHANGELOG.md": re.compile(r"(?ms)^### Renamed$.*?(?=^###? )|^[^\n]*->[^\n]*$")}


def texts():
    """Text files and their content, without the exceptions."""
    for name in NAMES:
        if name == THIS:
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        exception = EXCEPTIONS.get(name)
        yield name, exception.sub("", text) if exception else text


def found_words(line):
    """Words of the table that a line contains."""
    return [word for word, pattern in PATTERNS.items() if pattern.search(line)]


def defined_names(tree):
    """Names that a module defines, as (line, name, whether it is a test)."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name, node.name.startswith("test_")
            case ast.arg():
                yield node.lineno, node.arg, False
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id, False
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr, False
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name, False
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name, False


def names_of(source):
    """Names that a source defines; none are read if no name of it can be a pronoun."""
    is_clean = CANDIDATE.search(STRINGS.sub("", source)) is None
    return () if is_clean else defined_names(ast.parse(source))


def is_pronoun(name, *, is_test=False):
    """Whether a name is a pronoun, or has a part that the rules exclude."""
    parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    return name.strip("_").lower() in PRONOUNS or (not is_test and bool(parts & SPEECH))


def test_no_file_has_a_forbidden_word():
    found = [
        f"{name}: {line.strip()[:100]}: {word}: write {FORBIDDEN[word]!r} or what it is"
        for name, text in texts()
        if ANY.search(text)
        for line in text.splitlines()
        for word in found_words(line)
    ]
    assert found == []


def test_no_name_is_a_pronoun():
    found = [
        f"{path}:{line}: {name}: name what it is"
        for path in NAMES
        if path.endswith(".py") and path != THIS
        for line, name, is_test in names_of((ROOT / path).read_text(encoding="utf-8"))
        if is_pronoun(name, is_test=is_test)
    ]
    assert found == []


def test_words_are_found_in_texts_and_in_names():
    assert found_words("the Crew, rng=the_dice, def it_makes_no_sense():") == [
        "dice",
        "crews?",
        "makes? no sense",
    ]
    assert found_words("the rule of the housekeepers, a dicey one, heroic") == []


def test_pronouns_are_found_in_every_kind_of_definition():
    code = (
        "def said(one, *, is_told=1):\n    self.mine = it = one\n"
        "try: pass\nexcept E as told: pass\nfrom a import b as theirs\nclass LevelsSaid: pass\n"
        "def test_a_rejoin_is_told(): pass\ndef of(one_owner, number): pass\n"
    )
    names = {name for _, name, is_test in names_of(code) if is_pronoun(name, is_test=is_test)}
    assert names == {"said", "one", "is_told", "mine", "it", "told", "theirs", "LevelsSaid"}
