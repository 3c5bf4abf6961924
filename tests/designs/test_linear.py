from surefoot.designs import SafeBAILinear
from surefoot.testing import DesignSuite


class TestConformance(DesignSuite):
    design = SafeBAILinear()
