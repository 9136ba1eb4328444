"""python -m kernelab"""

import sys

from kernelab.cli.main import main

sys.exit(main())
