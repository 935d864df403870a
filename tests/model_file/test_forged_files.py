"""Once a forged file is loaded, all that can be asked of the model is answered, or the file is refused."""

from __future__ import annotations

import pytest

from tests.conftest import examples
from tests.model_file.forgery import forgeries, found_wrong, originals


@pytest.mark.parametrize("name", originals())
def test_files_that_are_as_they_were_written_are_answered(name, tmp_path):
    path = tmp_path / "m.maxdisc"
    path.write_bytes(originals()[name].content)
    found = found_wrong(path, originals()[name], tmp_path)
    assert found is not None
    # Whatever it refuses, it predicts.
    assert not {"predict", "predict_proba", "explain rows", "to_bytes", "clone", "info"} & found.keys()
    assert not [told for told in found.values() if "a defect of this program" in told]


@pytest.mark.parametrize("part", range(5))
def test_forged_files_are_answered_or_refused(part, tmp_path):
    count = examples(60).max_examples
    loaded, wrong = forgeries(count, tmp_path, seed=part)
    assert not wrong
    assert 0 < loaded < count


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_forged_files_are_answered_or_refused(part, tmp_path):
    loaded, wrong = forgeries(500, tmp_path, seed=f"slow {part}")
    assert not wrong
    assert 50 < loaded < 400
