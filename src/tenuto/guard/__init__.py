"""Approval, paths and sanitising: what stands between a model and the machine."""
