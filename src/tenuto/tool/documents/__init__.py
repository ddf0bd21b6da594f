"""Files that are read as the text in them: PDF files and notebooks."""
