"""The Agent Client Protocol: editors and other programs show Tenuto's sessions (`tenuto acp`)."""
