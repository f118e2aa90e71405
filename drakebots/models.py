from pathlib import Path
def package_root(): return Path(__file__).parent.parent/"models"
