"""The rows of the paper's text table."""

from __future__ import annotations

#: Each row's classes, as groups of newsgroups.
TEXT_TASKS = {
    "autos / motorcycles": [["rec.autos"], ["rec.motorcycles"]],
    "religion": [["talk.religion.misc"], ["soc.religion.christian"]],
    "ms-windows / windows.x": [["comp.os.ms-windows.misc"], ["comp.windows.x"]],
    "ibm / mac": [["comp.sys.ibm.pc.hardware"], ["comp.sys.mac.hardware"]],
    "rec: motors / sport": [["rec.autos", "rec.motorcycles"], ["rec.sport.baseball", "rec.sport.hockey"]],
    "sci: space, crypt / med, electronics": [["sci.space", "sci.crypt"], ["sci.med", "sci.electronics"]],
    "comp: windows / sys": [
        ["comp.os.ms-windows.misc", "comp.windows.x"],
        ["comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"],
    ],
    "talk": [
        ["talk.politics.guns"],
        ["talk.politics.mideast"],
        ["talk.politics.misc"],
        ["talk.religion.misc"],
    ],
    "sci": [["sci.crypt"], ["sci.electronics"], ["sci.med"], ["sci.space"]],
    "rec": [["rec.autos"], ["rec.motorcycles"], ["rec.sport.baseball"], ["rec.sport.hockey"]],
    "comp": [
        ["comp.graphics"],
        ["comp.os.ms-windows.misc"],
        ["comp.sys.ibm.pc.hardware"],
        ["comp.sys.mac.hardware"],
        ["comp.windows.x"],
    ],
}

#: The paper's accuracy of its discriminative competitor (DME), in percent.
PAPER_DME = {
    "autos / motorcycles": 95.59,
    "religion": 92.33,
    "ms-windows / windows.x": 93.6,
    "ibm / mac": 90.48,
    "rec: motors / sport": 98.68,
    "sci: space, crypt / med, electronics": 96.93,
    "comp: windows / sys": 91.88,
    "talk": 90.34,
    "sci": 95.26,
    "rec": 96.23,
    "comp": 83.41,
}
