"""The named requirements of durable, long and moving sessions (R-062 to R-072, R-076, R-101, R-102)."""
