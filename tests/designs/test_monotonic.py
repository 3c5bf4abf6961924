from surefoot.designs import SafeBAIMonotonic
from surefoot.testing import DesignSuite


class TestConformance(DesignSuite):
    design = SafeBAIMonotonic()


class TestPaperSchedule(DesignSuite):
    design = SafeBAIMonotonic("paper")
