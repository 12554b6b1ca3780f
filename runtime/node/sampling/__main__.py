"""The process of samples: `python -m fairlead.runtime.node.sampling`.

It reads what `brief.py` has from stdin, and answers each request with a line of JSON on stdout:
`{"sample": …}`, or `{"refusal": …}` with a sentence without secrets. It ends with its stdin. A JVM
is started when a job needs one, and ends with the process; its output is in
`cache/spark/-sample/logs` of the data folder, a name that no worker can have.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Final

from setproctitle import setproctitle

from ....events.model import Resource
from ...cluster.identity import KEY
from ...cluster.node_files import spark_folder
from ...cluster.run_folder import KeyRefusedError, read_key
from ...config.references.redaction import Redaction
from ...config.references.resolving import ReferenceBroken
from ...config.secrets import CannotUnseal, Vault
from ...pipeline.connectors.plugin_pipeline import (
    PluginPipeline,
    as_pipeline,
    config_of_plugin,
)
from ...pipeline.connectors.plugins import find_plugins
from ...pipeline.connectors.sample import read_sample
from ...pipeline.connectors.spark_pipeline import SparkPipeline
from ...pipeline.engines.embedded.engine import Embedded
from ...pipeline.engines.settings import OF_CLUSTERS
from ...pipeline.spi.context import Context, SparkJob
from ...pipeline.spi.errors import PluginUnknown, SampleRefused
from ...pipeline.spi.keys.common import TRANSFORMS
from ...pipeline.tasks.failures import reason_of
from .brief import SampleRequest, SamplingNode

FOLDER: Final = "-sample"
HEAP: Final = "1g"
CORES: Final = 2
START_SECONDS: Final = 60.0
"""How long a JVM may take to start."""
_TAG: Final = "sample"
_SAID: Final = (
    KeyRefusedError,
    CannotUnseal,
    ReferenceBroken,
    PluginUnknown,
    SampleRefused,
)
"""Errors whose text is a sentence for users."""


class Sampler:
    """Reads samples for one node, on the main thread."""

    def __init__(self, node: SamplingNode) -> None:
        """Prepare an engine; no JVM is started yet."""
        self._node = node
        self._redaction = Redaction()
        """Knows the secrets of all samples so far."""
        conf = {name: text for name, text in node.conf.items() if name not in OF_CLUSTERS}
        self._engine = Embedded(
            spark_folder(Path(node.data_dir), FOLDER),
            cores=CORES,
            conf={**conf, "spark.driver.memory": HEAP},
            hide=self._redaction.hide,
        )

    def answer(self, request: SampleRequest) -> dict[str, object]:
        """Read a sample; an error becomes a refusal."""
        hide = self._redaction.hide
        try:
            return self._read(request)
        except _SAID as error:
            return {"refusal": hide(str(error))}
        except Exception as error:  # noqa: BLE001  # plugins and systems outside may fail in any way
            return {"refusal": hide(reason_of(error))}

    def _read(self, request: SampleRequest) -> dict[str, object]:
        node, hide, warnings = self._node, self._redaction.hide, list[str]()
        vault = Vault(read_key(Path(node.data_dir) / "run" / KEY), node.data_dir)
        config, secrets = vault.open(request.name, request.config)
        self._redaction.learn(secrets)
        pipeline = pipeline_of(config, warnings.append)
        # Not the connector's own name, by which its running tasks are known to other systems.
        context = Context(Resource(_TAG), warnings.append, reach=node.limits(), hide=hide)
        sample = read_sample(pipeline, context, self._run)
        said = dict.fromkeys((*warnings, *sample.warnings))
        return {"sample": {**asdict(sample), "warnings": [*map(hide, said)]}}

    def _run(self, job: SparkJob) -> Any:  # noqa: ANN401  # what the job returns
        self._engine.open()  # unless it is open
        self._engine.wait_warm(START_SECONDS)
        return self._engine.run(_TAG, job)


def pipeline_of(config: Mapping[str, str], warn: Callable[[str], None]) -> Mapping[str, str]:
    """Return the config of the pipeline whose rows are read.

    Raises `SampleRefused` for a connector class that reads in a way of its own.
    """
    made_by = find_plugins().of(config).made_by
    if not issubclass(made_by, SparkPipeline):
        raise SampleRefused(
            f"{made_by.__name__} is no SparkPipeline, whose rows alone can be read as a sample"
        )
    if not issubclass(made_by, PluginPipeline):
        return config
    if theirs := config_of_plugin(config).get(TRANSFORMS):
        warn(f"{TRANSFORMS}: rows are as they are before {theirs}, which a plugin's JVM runs")
    return as_pipeline(config)


def main() -> None:
    """Answer requests until stdin ends."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what libraries print is no answer
        setproctitle("fairlead: samples")
        logging.getLogger("py4j").setLevel(logging.ERROR)
        sampler = Sampler(SamplingNode.decode(sys.stdin.buffer.readline()))
        requests: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=_follow, args=(sys.stdin.buffer, requests), daemon=True).start()
        while True:
            answer = sampler.answer(SampleRequest.decode(requests.get()))
            out.write(json.dumps(answer).encode() + b"\n")
            out.flush()


def _follow(lines: BinaryIO, requests: "SimpleQueue[bytes]") -> None:
    """Pass requests on; end the process with its stdin, whatever it is doing."""
    for line in lines:
        requests.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
