"""What anything that claims to be a `store.base.Store` must pass.

A test module says which engine it is about:

    class TestMine(StoreSuite):
        @pytest.fixture
        def backend(self) -> Backend: ...

`SharedStoreSuite` is for engines on which several workers live at once. `machine.StoreMachine` is a Hypothesis state
machine over the same agreement, held against a model of a few dictionaries.
"""

import pytest

from headwater.testing.store_suite.log import ListingTests, LogTests, RetentionTests
from headwater.testing.store_suite.orders import ApprovalsTests, StopTests, WaitingTests
from headwater.testing.store_suite.queue import QueueTests
from headwater.testing.store_suite.runs import EndTests, IdempotencyTests, StartTests
from headwater.testing.store_suite.sessions import (
    BlobsTests,
    DeletingTests,
    GroupsTests,
    KeysTests,
    QueueEditingTests,
    SearchTests,
    SessionsTests,
)
from headwater.testing.store_suite.workers import FencingTests, SharingTests


@pytest.mark.anyio
class StoreSuite(
    SessionsTests,
    DeletingTests,
    SearchTests,
    QueueEditingTests,
    GroupsTests,
    BlobsTests,
    KeysTests,
    LogTests,
    RetentionTests,
    ListingTests,
    FencingTests,
    StartTests,
    IdempotencyTests,
    EndTests,
    QueueTests,
    StopTests,
    WaitingTests,
    ApprovalsTests,
):
    """With one worker at a time."""


@pytest.mark.anyio
class SharedStoreSuite(SharingTests):
    """With several."""
