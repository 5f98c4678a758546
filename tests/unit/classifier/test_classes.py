from classifier.classes import CLASS_OF_KIND, CLASSES, DEFAULT_KIND, KINDS


def test_every_kind_belongs_to_exactly_one_class():
    kinds = [kind for c in CLASSES for kind in KINDS[c]]
    assert len(kinds) == len(set(kinds)) == len(CLASS_OF_KIND)


def test_every_class_has_a_default_kind_of_its_own():
    assert all(CLASS_OF_KIND[DEFAULT_KIND[c]] is c for c in CLASSES)
