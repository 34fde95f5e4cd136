#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what is wrong with the prose of Markdown files, as FILE:LINE: fault.

  tests/check/prose.py FILE...

A fault is a sentence of more than 25 words, a cell of a table with more than two sentences, or a
link to a file or an anchor that does not exist. The exit status is 1 if there is one.

A sentence ends at a full stop, a question mark or an exclamation mark. It also ends at a colon or a
semicolon if an independent clause follows, which has a verb of the list below before any relative
pronoun. A list after a colon is part of the sentence. A code span is one word. Blocks of code are
not read.
"""
import os
import re
import sys

MOST_WORDS = 25
MOST_SENTENCES = 2

# Finite verbs. A clause without one of them is taken for a list: add the verb that is missing.
VERB = re.compile(r"\b(" + "|".join("""
    is are was were has have had does do did can cannot could may might must will would should
    accepts? adds? allows? appl(?:y|ies) beg[ai]n begins became becomes? came comes? compares? computes?
    contains? costs? counts? covers? changes? decides? differs? ends? exceeds? explains? failed fails?
    fell falls? finds? follows? found gave gets? gives? goes got grew grows? held holds? ignores?
    keeps? kept lasts? lies? lists? loads? made makes? marks? measures? names? needs? proves? ran
    reach(?:es)? reads? refuses? removes? replaces? reports? requires? returns? runs? said saw says?
    sees? sends? sent sets? shows? stands? starts? states? stays? stayed stops? takes? took uses?
    waited waits? went works? writes? wrote""".split()) + r")\b")
RELATIVE = re.compile(r"(?<=\S)\s+(who|whose|which|that|what|where|when|while|if|as|because)\b")
CONDITION = re.compile(r"(if|where|when|while|as|because|else|then|what|who|that|which)\b", re.I)

SENTENCE_END = re.compile(r"(?<=[.!?])[*_)\"]*\s+")
CLAUSE_END = re.compile(r"(?<=[:;])\**\s+")


def hide(text):
    """The text with code spans and targets of links as one word each, and of the same length."""
    text = re.sub(r"``.+?``|`[^`]*`", lambda code: "C" + "_" * (len(code[0]) - 1), text)
    return re.sub(r"(?<=\])\([^()\s]+\)", lambda target: "_" * len(target[0]), text)


def split(text, end):
    """Offset and text of each part; ends inside of code and links do not count."""
    places = [(match.start(), match.end()) for match in end.finditer(hide(text))]
    starts = [0] + [after for _, after in places]
    stops = [before for before, _ in places] + [len(text)]
    return [(start, text[start:stop]) for start, stop in zip(starts, stops) if text[start:stop].strip()]


def is_independent(clause):
    clause = hide(clause)
    return VERB.search(clause if CONDITION.match(clause) else RELATIVE.split(clause)[0])


def clauses(sentence):
    """The parts of a sentence that are sentences of their own."""
    begins = [start for start, part in split(sentence, CLAUSE_END) if not start or is_independent(part)]
    return [(begin, sentence[begin:end].rstrip()) for begin, end in zip(begins, begins[1:] + [len(sentence)])]


def count_words(text):
    text = re.sub(r"\*|\[|\]_*", "", hide(text))
    return sum(1 for word in text.split() if re.search(r"[A-Za-z0-9]", word))


class Page:
    def __init__(self, path):
        self.path = path
        self.faults = []
        self.anchors = set()
        self.links = []  # line and target
        self.paragraph = []  # lines with their numbers
        is_code = False
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file.read().splitlines(), 1):
                if line.lstrip().startswith("```"):
                    self.end_paragraph()
                    is_code = not is_code
                elif not is_code:
                    self.read_line(number, line)
        self.end_paragraph()

    def fault(self, number, text):
        self.faults.append((number, text))

    def read_line(self, number, line):
        self.links += [(number, target) for target in re.findall(r"\]\(([^()\s]+)\)", line)]
        is_indented_code = line.startswith("    ") and not self.paragraph
        if not line.strip() or line.startswith(("#", "|", "<!--")) or is_indented_code:
            self.end_paragraph()
            if line.startswith("#"):
                self.add_anchor(line.lstrip("#").strip())
            elif line.startswith("|"):
                self.read_row(number, line)
            return
        if re.match(r"\s*([-*]|\d+\.)\s", line):
            self.end_paragraph()
        self.paragraph.append((number, line.strip()))

    def add_anchor(self, heading):
        """As GitHub makes it."""
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = first = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        again = 0
        while name in self.anchors:
            again += 1
            name = f"{first}-{again}"
        self.anchors.add(name)

    def read_row(self, number, line):
        for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
            cell = cell.strip()
            count = len(split(cell, SENTENCE_END))
            if count > MOST_SENTENCES:
                self.fault(number, f"a cell of {count} sentences: {cell}")
            self.check_sentences([(number, cell)])

    def end_paragraph(self):
        self.check_sentences(self.paragraph)
        self.paragraph = []

    def check_sentences(self, lines):
        text, begins = "", []
        for number, line in lines:
            begins.append((len(text), number))
            text += line + " "
        for at, sentence in split(text.rstrip(), SENTENCE_END):
            for offset, clause in clauses(sentence):
                count = count_words(clause)
                if count > MOST_WORDS:
                    number = [number for begin, number in begins if begin <= at + offset][-1]
                    self.fault(number, f"a sentence of {count} words: {clause}")


def check_links(page, pages):
    for number, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), file)) if file else page.path
        if not os.path.exists(path):
            page.fault(number, f"there is no file for the link {target}")
        elif anchor and path.endswith(".md"):
            if path not in pages:
                pages[path] = Page(path)
            if anchor not in pages[path].anchors:
                page.fault(number, f"there is no anchor for the link {target}")


def main():
    pages = {os.path.normpath(path): Page(os.path.normpath(path)) for path in sys.argv[1:]}
    named = list(pages.values())
    for page in named:
        check_links(page, pages)
    for page in named:
        for number, fault in sorted(page.faults):
            print(f"{page.path}:{number}: {fault}")
    return 1 if any(page.faults for page in named) else 0


if __name__ == "__main__":
    sys.exit(main())
