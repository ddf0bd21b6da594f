"""Images for a prompt: from the clipboard, from pasted and dropped paths, made to fit."""
