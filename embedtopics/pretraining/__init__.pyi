from . import results as results
from ._masking import SelectiveMasking as SelectiveMasking
from ._pretrain import pretrain as pretrain
from ._report import tokenizer_report as tokenizer_report
from ._tokenizers import new_encoder as new_encoder
from ._tokenizers import train_tokenizer as train_tokenizer
from ._vocabulary import extend_vocabulary as extend_vocabulary
