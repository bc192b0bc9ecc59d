"""Results of topics: what the functions of `embedtopics.topics` take and return."""

from embedtopics.topics.results._assignment import Assignment
from embedtopics.topics.results._constraints import TopicConstraints as TopicConstraints
from embedtopics.topics.results._edits import Edit
from embedtopics.topics.results._edits import TopicMark as TopicMark
from embedtopics.topics.results._growing import SIGNIFICANT as SIGNIFICANT
from embedtopics.topics.results._growing import Extension, SampleFit
from embedtopics.topics.results._hierarchy import TopicHierarchy
from embedtopics.topics.results._inspection import Inspection
from embedtopics.topics.results._mixture import Mixture
from embedtopics.topics.results._plan import PlanResult
from embedtopics.topics.results._result import TopicResult
from embedtopics.topics.results._specifications import CHOICES as CHOICES
from embedtopics.topics.results._specifications import Specifications
from embedtopics.topics.results._topics import Reason, Stability, Topic
from embedtopics.topics.results._topics import Theme as Theme
from embedtopics.topics.results._trends import NO_TOPIC as NO_TOPIC
from embedtopics.topics.results._trends import CellTerms as CellTerms
from embedtopics.topics.results._trends import Times as Times
from embedtopics.topics.results._trends import TopicEffects, TopicGroups, TopicTrends
from embedtopics.topics.results._verification import Verification

__all__ = [
    "Assignment",
    "Edit",
    "Extension",
    "Inspection",
    "Mixture",
    "PlanResult",
    "Reason",
    "SampleFit",
    "Specifications",
    "Stability",
    "Topic",
    "TopicEffects",
    "TopicGroups",
    "TopicHierarchy",
    "TopicResult",
    "TopicTrends",
    "Verification",
]
