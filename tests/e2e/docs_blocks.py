#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code blocks of a page, for docs_run.sh, and whether a block's output is
what the page shows.

    docs_blocks.py plan PAGE FOLDER    one file per block, and FOLDER/plan
    docs_blocks.py same HOW WANT GOT   HOW: exact, or numbers (they may differ)

Every block is run unless a mark in the line before it says otherwise. A mark
is an HTML comment in markdown and a comment of scdoc in a manual page, so that
readers do not see it:

    <!-- run: no, REASON -->           ; run: no, REASON

    no, REASON              not run, for that reason
    file NAME               written to NAME, for a later block that names it
    prints                  what the block before prints; ... stands for anything
    prints, numbers vary    the same, but for the numbers in it
    fails                   its last command ends with an error

A block under SYNOPSIS is a form to be filled in, and not run either.
A line <!-- run page: no, REASON --> is for all blocks of its page: another test
runs it, for example.
"""
import json
import re
import sys

# What "..." stands for in a line, and a number, with its unit if it has one.
ANY = re.compile(r'\\\.\\\.\\\.')
NUMBER = re.compile(r'\d+(\.\d+)?([kKMGT%]|B|us|ms|s)?\b')
KINDS = {'sh': 'sh', 'bash': 'sh', 'c': 'c', 'python': 'py', 'ini': 'ini',
         'json': 'json', 'text': 'text'}


class Wrong(Exception):
    """What is wrong with a page, in words."""


def kind_of(language, text):
    """Manual pages name no language; there the first line tells."""
    if language:
        if language not in KINDS:
            raise Wrong('nobody runs blocks of %s' % language)
        return KINDS[language]
    if text.startswith('#include'):
        return 'c'
    if re.match(r'(import|from) \w+', text):
        return 'py'
    if re.match(r'\[[a-z]', text):
        return 'ini'
    if text.startswith('{'):
        return 'json'
    return 'sh'


def mark_of(lines, at, page):
    """The words of the mark above line `at`, or None."""
    at -= 1
    while at >= 0 and not lines[at].strip():
        at -= 1
    pattern = (r'; run: (.*)$' if page.endswith('.scd')
               else r'<!-- run: (.*) -->$')
    found = re.match(pattern, lines[at]) if at >= 0 else None
    return found.group(1) if found else None


def blocks_of(page):
    """(line number, language, mark, text) of each block."""
    lines = open(page).read().split('\n')
    at, section = 0, ''
    while at < len(lines):
        fence = re.match(r'```(\w*)$', lines[at])
        if lines[at].startswith('# '):
            section = lines[at][2:]
        at += 1
        if not fence:
            continue
        start = at
        while at < len(lines) and lines[at] != '```':
            at += 1
        if at == len(lines):
            raise Wrong('line %d: a block without an end' % start)
        text = '\n'.join(lines[start:at]) + '\n'
        if page.endswith('.scd'):
            text = text.replace('\\\\', '\\')
        form = page.endswith('.scd') and section == 'SYNOPSIS'
        yield (start, 'text' if form else fence.group(1),
               mark_of(lines, start - 1, page), text)
        at += 1


def how_of(mark, kind, text):
    """(what to do with the block, its argument)."""
    if mark is None:
        if kind == 'text' and re.search(r'^(build/)?aquifer ', text, re.M):
            raise Wrong('a text block with commands')
        if kind == 'json':
            for part in [text] if text.count('\n{') == 0 else text.splitlines():
                json.loads(part)
        return {'text': 'text', 'json': 'text'}.get(kind, 'run'), ''
    word, _, rest = mark.partition(' ')
    if word == 'no,' and rest:
        return 'no', rest
    if word == 'file' and re.fullmatch(r'[\w.-]+', rest):
        return 'file', rest
    if mark in ('prints', 'prints, numbers vary'):
        return 'prints', 'numbers' if rest else 'exact'
    if mark == 'fails' and kind == 'sh':
        return 'fails', ''
    raise Wrong('a mark that means nothing: %s' % mark)


def plan(page, folder):
    """Writes the blocks, and what to do with each: number, line, how, kind,
    argument."""
    rows, files = [], {}
    whole = re.search(r'^(?:<!--|;) (run page: .*?)(?: -->)?$',
                      open(page).read(), re.M)
    if whole and not re.match(r'run page: no, .', whole.group(1)):
        raise Wrong('a mark that means nothing: %s' % whole.group(1))
    for line, language, mark, text in blocks_of(page):
        try:
            kind = kind_of(language, text)
            how, argument = how_of(mark, kind, text)
            if whole and how != 'text':
                how, argument = 'no', whole.group(1)[len('run page: no, '):]
        except (Wrong, ValueError) as e:
            raise Wrong('line %d: %s' % (line, e)) from e
        if how == 'prints' and not (rows and rows[-1][2] in ('run', 'fails')):
            raise Wrong('line %d: no block before prints it' % line)
        if how == 'file':
            files[argument] = line
        if how in ('run', 'fails') and kind == 'sh':
            for name in [f for f in files if f in text]:
                del files[name]
        name = '%02d.%s' % (len(rows), kind)
        open('%s/%s' % (folder, name), 'w').write(text)
        rows.append((name, line, how, kind, argument))
    for name, line in files.items():
        raise Wrong('line %d: no command uses %s' % (line, name))
    with open(folder + '/plan', 'w') as f:
        for row in rows:
            f.write('\t'.join(str(x) if x != '' else '-' for x in row) + '\n')


def same(how, want, got):
    """Line by line; a line "..." stands for any number of lines."""
    def simple(text):
        text = '\n'.join(line.rstrip() for line in text.strip('\n').split('\n'))
        if how == 'numbers':
            text = re.sub(r'[ \t]+', ' ', NUMBER.sub('0', text))
        return text
    pattern = re.escape(simple(open(want).read()))
    pattern = re.sub(r'(^|\n)\\\.\\\.\\\.(\\?\n)', r'\1(?:.*\\n)*?',
                     pattern + '\n')
    pattern = ANY.sub('.*', pattern)
    return re.fullmatch(pattern, simple(open(got).read()) + '\n') is not None


def main(words):
    """Ends with 1 and says why."""
    try:
        if words[:1] == ['plan'] and len(words) == 3:
            plan(words[1], words[2])
        elif words[:1] == ['same'] and len(words) == 4:
            return 0 if same(*words[1:]) else 1
        else:
            raise Wrong(__doc__)
    except Wrong as e:
        print('%s: %s' % (words[1] if len(words) > 1 else '', e),
              file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
