from ._corpus import Corpus as Corpus
from ._dates import parse_dates as parse_dates
from ._languages import detect_languages as detect_languages
