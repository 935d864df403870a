"""The paper's experiments, and those it left out: data, methods, runs, statistics and tables.

``make paper`` runs all of them, ``make paper-quick`` a part that takes minutes. Only public names of maxdisc
are used.
"""
