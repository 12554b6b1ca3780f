"""The launcher's handle of the process that owns the shared JVM; see `engine`."""

from dataclasses import asdict

from ...cluster.spec import NodeSpec
from ...processes.tied import BriefedProcess
from ..process_files import ProcessFiles


class EngineProcess(BriefedProcess):
    """The process that owns the shared JVM; it outlives the workers and the supervisor."""

    title = "engine"

    def __init__(self, files: ProcessFiles, node: NodeSpec) -> None:
        """Prepare the command and its input; nothing is started yet."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "engine": asdict(node.engine),
            "paths": node.reach.paths,
            "answer_timeout_ms": node.answer_timeout_ms,
            "backoff_ms": [node.backoff_ms.first, node.backoff_ms.longest],
            "log": asdict(node.log),
        }
        record = files.recorder("engine", "shared")
        super().__init__("fairlead.runtime.node.engine", brief, record, node.backoff_ms)
