"""`crawld bench change --quick`, in this process."""

from crawld.bench import change


def test_quick_run_measures_every_metric():
    lines = []
    value = change.run(quick=True, progress=lines.append)
    assert value["ours"].keys() == {
        "analyse_ms",
        "analyse_with_previous_ms",
        "model_update_us",
        "refit_1m_s",
        "version_store_share",
        "version_read_ms",
    }
    assert all(figure > 0 for figure in value["ours"].values())
    assert value["ours"]["version_store_share"] < 0.1
    assert value["ratios"].keys() == {"parsel.analyse_ms"}
    assert len(lines) == 3
