from ._explorer import explore as explore
from ._report import write_report as write_report
