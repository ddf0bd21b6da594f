"""What survives compaction, measured: generated and recorded sessions, a scripted or a real model, tables with bars."""
