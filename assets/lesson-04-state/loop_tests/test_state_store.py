"""状态存储 (the state store)."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from issue_garden.state_store import atomic_write_json, canonical_digest


class StateStoreTest(unittest.TestCase):
    def test_key_order_does_not_change_the_digest(self) -> None:
        """键的顺序不改变摘要 (key order does not change the digest)"""
        one, other = (
            json.loads('{"a": 1, "b": {"c": 2, "d": "书"}}'),
            json.loads('{"b":{"d":"书","c":2},"a":1}'),
        )

        self.assertEqual(canonical_digest(one), canonical_digest(other))
        self.assertNotEqual(canonical_digest(one), canonical_digest(other | {"a": 2}))

    def test_an_updated_state_file_is_whole_and_alone(self) -> None:
        """更新后的状态文件是完整 JSON，旁边没有临时文件 (an updated state file is whole JSON, with no temporary file beside it)"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state.json")
            for number in range(3):
                atomic_write_json(path, {"round": number, "note": "x" * (1_000 - 400 * number)})

                self.assertEqual(json.loads(path.read_text("utf-8"))["round"], number)
                self.assertEqual([entry.name for entry in Path(folder).iterdir()], ["state.json"])
