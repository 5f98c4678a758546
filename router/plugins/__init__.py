"""What other programs load to choose as this gateway does."""
