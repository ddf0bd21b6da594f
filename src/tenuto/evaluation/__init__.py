"""What survives compaction, measured: generated sessions, a scripted model in process, a table with bars."""
