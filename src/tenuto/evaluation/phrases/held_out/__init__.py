"""The held-out sentences: whoever works on compaction does not read them, nor looks for their words in the program.

They say what the known ones say, as people and models say it who never saw those. A figure that is lower here than with
the known set is what the program is worth outside its own measure. What is missed is told by kind; a sentence that is
quoted to whoever improves it is replaced.
"""
