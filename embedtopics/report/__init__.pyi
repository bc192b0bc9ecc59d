from ._explorer import explore as explore
from ._report import write_report as write_report
from ._search_page import serve_index as serve_index
