"""Builds of the work on files in which one guard is missing."""

from __future__ import annotations

from tieredctl_proposals.coordinator.ownership import AskForHandOver, DeleteObject, Duty, HandOver, OwnershipWorker

from tests.coordinator.ownership_histories import Files


class WithoutGrace(OwnershipWorker):
    """Deletes at once."""

    def start(self, now_ms: int) -> None:
        self.grace_ms = 0
        super().start(now_ms)


class WithoutOwnership(OwnershipWorker):
    """Deletes what has no live batch here, without asking whose it is."""

    def _duty(self, released: object) -> Duty:
        return DeleteObject(released.file)  # type: ignore[attr-defined]


class WithoutLookingAtBatches(OwnershipWorker):
    """Passes on what it is handed, whether it has live batches of it or not."""

    def receive(self, message: HandOver | AskForHandOver, now_ms: int) -> bool:
        self.files = _Released(self.files.live)  # type: ignore[attr-defined]
        return super().receive(message, now_ms)


class _Released(Files):
    def has_live_batches(self, object_key: str) -> bool | None:
        return False


class WithoutCommittingWhatIsUnknown(OwnershipWorker):
    """Passes on what it never heard of, and still accepts a commit that comes late."""

    def receive(self, message: HandOver | AskForHandOver, now_ms: int) -> bool:
        if self.files.has_live_batches(message.file.object_key) is None:
            self.files = _Released(self.files.live)  # type: ignore[attr-defined]
        return super().receive(message, now_ms)


class WithoutAsking(OwnershipWorker):
    """Waits for what the leader before was handed."""

    def _duty(self, released: object) -> Duty:
        duty = super()._duty(released)  # type: ignore[arg-type]
        return AskForHandOver(duty.file, self.coordinator_id) if isinstance(duty, AskForHandOver) else duty


class WithoutRepeating(OwnershipWorker):
    """Takes a message for delivered that was sent."""

    def due(self, now_ms: int) -> object:  # type: ignore[override]
        for duty in super().due(now_ms):
            self.confirm(duty)
            yield duty


class WithoutStarting(OwnershipWorker):
    """Takes up nothing that the leader before left."""

    def start(self, now_ms: int) -> None:
        pass
