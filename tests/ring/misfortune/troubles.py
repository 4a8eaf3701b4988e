"""What befalls the ring. A trouble is a function of the stage and a random number generator: it begins the trouble and returns what
it has done, in words, and a function that ends it. `None`: it does not apply now.

A node that is down, paused or slow is taken: no second trouble of that kind comes to it. Cuts of the network may meet any other trouble.
"""

import itertools

CLOCK_STEP_SECONDS_MAX = 120
SYNC_DELAY_SECONDS = (0.1, 1.0)


def names(nodes):
    return " ".join(f"n{node.number}" for node in nodes)


def some(stage, rng, counts):
    """Idle nodes, as many as drawn from `counts`; they are taken until the trouble ends."""
    idle = [node for node in stage.nodes if node not in stage.taken]
    count = min(rng.choice(counts), len(idle))
    chosen = rng.sample(idle, count)
    stage.taken.update(chosen)
    return chosen


def kill(stage, rng):
    """kill -9, of one node, two, or all."""
    nodes = some(stage, rng, [1] * 6 + [2, 3])
    if not nodes:
        return None
    for node in nodes:
        node.kill()

    return f"kill -9 {names(nodes)}", lambda: stage.start(nodes)


def restart(stage, rng):
    """A clean stop, as of an upgrade."""
    nodes = some(stage, rng, [1])
    if not nodes:
        return None
    for node in nodes:
        node.stop()

    return f"stop {names(nodes)}", lambda: stage.start(nodes)


def pause(stage, rng):
    """SIGSTOP: connections stay open, nothing is answered; then everything at once."""
    nodes = some(stage, rng, [1] * 5 + [2, 3])
    if not nodes:
        return None
    for node in nodes:
        node.pause()

    def end():
        for node in nodes:
            node.resume()
        stage.taken.difference_update(nodes)

    return f"pause {names(nodes)}", end


def cuts(stage, pairs, words):
    """Cuts each (deaf, speaker) of `pairs` until the trouble ends."""
    for deaf, speaker in pairs:
        stage.wires.cut(deaf, speaker)

    def end():
        for deaf, speaker in pairs:
            stage.wires.mend(deaf, speaker)

    return words, end


def isolate(stage, rng):
    """One node on one side, the others on the other."""
    if not stage.wires:
        return None
    alone = rng.choice(list(stage.wires.numbers))
    others = [number for number in stage.wires.numbers if number != alone]
    both = [(alone, other) for other in others] + [(other, alone) for other in others]
    return cuts(stage, both, f"cut n{alone} off")


def one_way(stage, rng):
    """One node does not hear one other, or all others, which hear it."""
    if not stage.wires:
        return None
    deaf = rng.choice(list(stage.wires.numbers))
    others = [number for number in stage.wires.numbers if number != deaf]
    speakers = rng.choice([others, [rng.choice(others)]])
    pairs = [(deaf, speaker) for speaker in speakers]
    if rng.random() < 0.5:
        return cuts(stage, pairs, f"n{deaf} does not hear {speakers}")
    return cuts(stage, [(speaker, deaf) for deaf, speaker in pairs], f"{speakers} do not hear n{deaf}")


def bridge(stage, rng):
    """Two nodes do not reach each other; a third reaches both."""
    if not stage.wires:
        return None
    one, other = rng.sample(list(stage.wires.numbers), 2)
    return cuts(stage, [(one, other), (other, one)], f"cut n{one} | n{other}")


def scatter(stage, _):
    """Nobody reaches anybody."""
    if not stage.wires:
        return None
    return cuts(stage, list(itertools.permutations(stage.wires.numbers, 2)), "cut everybody off")


def clock(stage, rng):
    """A wall clock steps, and steps back at the end."""
    if not stage.injections:
        return None
    number, injection = rng.choice(sorted(stage.injections.items()))
    seconds = rng.uniform(-CLOCK_STEP_SECONDS_MAX, CLOCK_STEP_SECONDS_MAX)
    injection.set_clock(seconds)
    return f"clock of n{number} steps by {seconds:.1f} s", lambda: injection.set_clock(0)


def slow_disk(stage, rng):
    """Each sync of a node takes longer."""
    if not stage.injections:
        return None
    number, injection = rng.choice(sorted(stage.injections.items()))
    seconds = rng.uniform(*SYNC_DELAY_SECONDS)
    injection.set_sync_delay(seconds)
    return f"each sync of n{number} takes {seconds:.2f} s", lambda: injection.set_sync_delay(0)


def upkeep(stage, rng):
    """What an operator does meanwhile."""
    nodes = [node for node in stage.nodes if node not in stage.taken]
    if not nodes:
        return None
    node, verb = rng.choice(nodes), rng.choice(["flush", "compact"])
    try:
        node.nodetool(verb)
    except (RuntimeError, OSError) as error:
        return f"{verb} n{node.number} failed: {str(error)[:200]}", lambda: None
    return f"{verb} n{node.number}", lambda: None


def alter(stage, rng):
    """A column more, at whichever node answers; in the end all nodes have one schema."""
    stage.altered += 1
    text = f"ALTER TABLE misfortune.{rng.choice(['registers', 'sets'])} ADD extra{stage.altered} int"
    stage.session.execute_async(text, timeout=30)
    return text, lambda: None


TROUBLES = [kill] * 4 + [pause] * 3 + [isolate] * 3 + [one_way] * 2 + [bridge] * 2 + [scatter, clock, clock, slow_disk, upkeep, upkeep, restart, alter]
