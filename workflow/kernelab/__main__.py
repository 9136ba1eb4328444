"""python -m kernelab"""

import sys

try:
    from kernelab.cli.main import main

    status = main()
except KeyboardInterrupt:  # while the package is still being imported
    status = 130
sys.exit(status)
