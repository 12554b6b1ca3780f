"""Statuses that a notebook shows as tables."""

from collections.abc import Iterable
from html import escape

from ...replies.connectors import ConnectorState, ConnectorStateInfo, TaskState
from ...replies.overview import NodeStatus


class ConnectorStatus(ConnectorStateInfo, frozen=True, omit_defaults=True):
    """The states of a connector and of its tasks."""

    def _repr_html_(self) -> str:
        parts: dict[str, ConnectorState | TaskState] = {"connector": self.connector}
        parts.update((f"task {each.id}", each) for each in self.tasks)
        return f"<h4>{escape(self.name)}</h4>" + _table(
            ("", "state", "worker", "reason"),
            ((what, of.state, of.worker_id, of.trace or of.reason) for what, of in parts.items()),
        )


class NodeOverview(NodeStatus, frozen=True):
    """A node with its connectors, and the verdict whether anything is wrong."""

    def _repr_html_(self) -> str:
        verdict = f"<p><b>{escape(self.verdict.status)}</b>: {escape(self.verdict.message)}</p>"
        return verdict + _table(
            ("connector", "type", "state", "tasks", "running"),
            (
                (name, of.type, of.connector.state, str(len(of.tasks)), str(_count_running(of)))
                for name, each in sorted(self.connectors.items())
                if (of := each.status) is not None
            ),
        )


def _count_running(status: ConnectorStateInfo) -> int:
    return sum(each.state == "RUNNING" for each in status.tasks)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
