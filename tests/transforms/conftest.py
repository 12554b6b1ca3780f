"""What tests of transforms share: the peer, and how a transform is made of its keys."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.transform import Transform
from fairlead.runtime.pipeline.transforms.catalogue import make_chain
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.transforms.peer import TransformPeer, transform_peer


@pytest.fixture(scope="session")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformPeer]:
    """Connect's own classes."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(transform_peer(tmp_path_factory.mktemp("peer")))
        except NoPeer as missing:
            pytest.skip(str(missing))


def made(kind: str, keys: Mapping[str, str], **others: str) -> Transform:
    """Return the transform `x` of a type, made of its bare keys, in a chain by itself."""
    config = {"transforms": "x", "transforms.x.type": kind, **others}
    config |= {f"transforms.x.{key}": value for key, value in keys.items()}
    (transform,) = make_chain(config, Context(Resource("c", 0), print))
    return transform
