"""What the bytes mean: subscription and assignment blobs, every version, one table."""
