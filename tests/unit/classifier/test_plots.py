from classifier.classes import WorkloadClass
from classifier.metrics import Scored
from classifier.plots import draw

PNG = b"\x89PNG"


def test_draws_two_pictures(tmp_path):
    rows = [
        Scored(
            c, {other.value: 0.8 if other is c else 0.1 for other in WorkloadClass}, "", "", False
        )
        for c in WorkloadClass
    ]
    for path in draw(rows, tmp_path / "new"):
        assert path.read_bytes().startswith(PNG)
