"""What the trio learns from: documents of our own grammars, and the standard library's text."""
