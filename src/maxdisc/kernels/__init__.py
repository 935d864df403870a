"""Compiled inner loops, imported only when the data are large enough to pay for it.

Nothing here is called directly by users. Every kernel has a plain numpy or Python version elsewhere, which is
the way for small data and the oracle of the tests. Kernels hold no lock while they run, so
:func:`maxdisc.threads.in_threads` runs them side by side over ranges; none starts threads of its own.
"""
