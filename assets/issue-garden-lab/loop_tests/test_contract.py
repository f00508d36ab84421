"""契约 (the contract)."""

from __future__ import annotations

from lab_case import LabCase

from issue_garden.answers import StoppedError
from issue_garden.contract import load_contract


class ContractTest(LabCase):
    def test_a_valid_contract_has_a_stable_digest(self) -> None:
        """合法契约能读入，摘要稳定 (a valid contract loads, with a stable digest)"""
        first, second = load_contract(self.lab), load_contract(self.lab)

        self.assertEqual(first.digest, second.digest)
        self.assertRegex(first.digest, r"\Asha256:[0-9a-f]{64}\Z")
        self.assertEqual(first.allowed_paths, ("src/",))

    def test_a_malformed_contract_is_refused(self) -> None:
        """残缺的契约被拒绝：未知字段、缺字段、非正预算 (unknown key, missing field, budget that is not positive)"""
        cases = {
            "unknown_field": {"max_linse": 3},
            "missing_field": {"max_lines": None},
            "bad_value": {"max_lines": 0},
        }
        whole = (self.lab / "loop.contract.json").read_bytes()
        for cause, change in cases.items():
            with self.subTest(cause):
                (self.lab / "loop.contract.json").write_bytes(whole)
                self.contract_with(**change)
                with self.assertRaises(StoppedError) as stopped:
                    load_contract(self.lab)
                self.assertEqual(
                    (stopped.exception.answer.exit_code, stopped.exception.answer.cause), (2, cause)
                )
