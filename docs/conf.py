"""The site: Sphinx with MyST and numpydoc, since users of NumPy and SciPy know its pages and its docstrings."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from reference import write_pages  # noqa: E402

import surefoot  # noqa: E402

project, author = "Surefoot", "the Surefoot authors"
release = version = surefoot.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build", "notebooks/.*"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nitpicky = False
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
html_theme = "pydata_sphinx_theme"
html_title = "Surefoot"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2, "secondary_sidebar_items": ["page-toc"]}
copybutton_exclude = ".linenos, .gp, .go"

write_pages(HERE / "made")
