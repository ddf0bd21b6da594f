"""`tenuto plugins`: adding, listing and removing what others put together."""
