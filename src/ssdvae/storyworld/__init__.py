"""Generated corpora: the storyworld, whose exact distribution is known, and a log of support tickets."""
