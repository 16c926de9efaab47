"""All cases, in the order in which they are run."""

from __future__ import annotations

from command_line import COMMAND_LINE
from healthy import HEALTHY
from host import HOST
from model_files import MODEL_FILES
from serving import SERVING

CASES = (*COMMAND_LINE, *MODEL_FILES, *HOST, *SERVING, *HEALTHY)
