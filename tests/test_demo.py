"""What ``make demo`` prints."""

from __future__ import annotations

from maxdisc.demo import breast_cancer_task, run


def test_the_demo_compares_and_shows_what_was_learnt():
    lines: list[str] = []
    result = run(breast_cancer_task(), lines.append)
    text = "\n".join(lines)
    assert result["maxdisc"] > 0.93
    assert f"maxdisc {result['maxdisc']:.3f}" in text
    assert f"{result['peer']:.3f}" in text
    assert "features kept" in text
    assert "malignant" in text
    assert "worst" in text
