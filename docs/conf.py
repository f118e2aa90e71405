"""The site: `make docs` builds it into out/site from the pages where they stand.

The source folder is the repository, so that links between pages are the same on GitHub
and on the site. `extension.py` beside this file makes the pages of the reference.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import drakebots

project = "drakebots"
author = "the authors of drakebots"
copyright = "the authors of drakebots; BSD 3-Clause"
version = release = drakebots.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/evidence/*.md",
    "docs/reference/*.rst",
    "models/*/README.md",
    "docs/notebooks/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
]
# Folders that need not even be listed.
exclude_patterns = [".*", "out", "build", "drakebots", "tests", "scripts", "*.egg-info"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "extension",
]

html_theme = "furo"
html_title = f"drakebots {version}"
html_theme_options = {"top_of_page_buttons": []}
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"  # MathJax would come from the network
pygments_style = "friendly"
highlight_language = "default"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
default_role = "code"
suppress_warnings = ["ref.python"]  # short names that several rooms have
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
