"""The paper's experiments and our comparisons, each one command: `surefoot reproduce`.

`cells`: one design on one instance, with its regret. `paper`: which cells make which figure, and what the paper
claims. `report`: the folder with figures, data and report.html. `cost`: what a SafeOpt pull costs.
"""

from .cells import design_for, settings

__all__ = ["design_for", "settings"]
