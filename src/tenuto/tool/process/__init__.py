"""Commands: processes, their output, jobs, what a killed program left."""
