"""The judge of lists to which transactions append: strict serializability by cycles, as Elle does (Kingsbury and Alvaro, 2020).

A transaction appends one element to some lists of a partition, or reads all of them. Elements are unique, so each list that is read shows
the order of its appends, and everything that must stand before something else is an edge between two transactions:

- ww: one element stands right before another in a list;
- wr: a read shows an element as the last one of a list;
- rw: a read does not show an element that stands right behind the last one that it shows;
- rt: one transaction had ended before the other began.

A cycle means that no order explains the history. What needs no cycle is found first: lists that are not prefixes of each other, an element
that comes twice or that nobody appended, an acknowledged append that the reads after the last trouble do not show. An append without an
answer counts as soon as somebody has read it. Not judged: appends without an answer that nobody has read.
"""

import collections


class Partition:
    """The transactions of one partition, and what their reads show."""

    def __init__(self, operations):
        self.reads = [one for one in operations if one["op"] == "read" and one["to"] is not None]
        self.appends = [one for one in operations if one["op"] == "append"]
        self.writers = {(item, element): one for one in self.appends for item, element in one["in"]}
        self.findings = []
        self.longest = self.orders()

    def found(self, words, *operations):
        self.findings.append(f"appends: {words}: " + "; ".join(map(str, operations)))

    def orders(self):
        """Of each list the longest that was read; every other one has to be its beginning."""
        longest, by = {}, {}
        for read in self.reads:
            for item, elements in read["out"]:
                if len(elements) > len(longest.get(item, [])):
                    longest[item], by[item] = elements, read
        for read in self.reads:
            for item, elements in read["out"]:
                whole = longest.get(item, [])
                if elements != whole[: len(elements)]:
                    self.found(f"list {item} is read in two orders", read, by[item])
        for item, elements in longest.items():
            self.elements(item, elements, by[item])
        return longest

    def elements(self, item, elements, read):
        for element, count in collections.Counter(elements).items():
            writer = self.writers.get((item, element))
            if count > 1:
                self.found(f"element {element} is twice in list {item}", read)
            if writer is None:
                self.found(f"element {element} of list {item} was never appended", read)
            elif writer["to"] is not None and not writer["out"]:
                self.found(f"element {element} of list {item} was refused, and is there", writer, read)

    def lost(self):
        """Acknowledged and in no list, although a later read shows the list."""
        for (item, element), writer in self.writers.items():
            if writer["to"] is None or not writer["out"] or element in self.longest.get(item, []):
                continue
            later = next((read for read in self.reads if read["from"] > writer["to"]), None)
            if later:
                self.found(f"element {element} of list {item} is lost", writer, later)

    def edges(self):
        """(from, to, why) by place in `transactions`."""
        seen = {id(self.writers[item, element]) for item, elements in self.longest.items() for element in elements if (item, element) in self.writers}
        # an append whose outcome is unknown and that nobody has read may never have happened
        transactions = [one for one in self.appends if id(one) in seen or (one["to"] is not None and one["out"])] + self.reads
        place = {id(one): number for number, one in enumerate(transactions)}
        writer = {name: place[id(one)] for name, one in self.writers.items() if id(one) in place}
        found = {}

        def edge(one, other, why):
            if one is not None and other is not None and one != other:
                found.setdefault((one, other), why)

        for item, elements in self.longest.items():
            for before, after in zip(elements, elements[1:]):
                edge(writer.get((item, before)), writer.get((item, after)), f"ww of list {item}")
        for read in self.reads:
            shown = {item: elements for item, elements in read["out"]}
            for item, whole in self.longest.items():
                elements = shown.get(item, [])
                if elements != whole[: len(elements)]:
                    continue
                if elements:
                    edge(writer.get((item, elements[-1])), place[id(read)], f"wr of list {item}")
                if len(elements) < len(whole):
                    edge(place[id(read)], writer.get((item, whole[len(elements)])), f"rw of list {item}")
        for one in transactions:
            for other in transactions:
                if one["to"] is not None and one["to"] < other["from"]:
                    edge(place[id(one)], place[id(other)], "rt")
        return transactions, found

    def cycles(self):
        transactions, edges = self.edges()
        graph = collections.defaultdict(list)
        for one, other in edges:
            graph[one].append(other)
        cycle = shortest(components(len(transactions), graph), graph)
        if cycle:
            steps = [f"{transactions[one]} -> {edges[one, other]} ->" for one, other in zip(cycle, cycle[1:] + cycle[:1])]
            self.found(f"a cycle of {len(cycle)}", " ".join(steps))


def components(count, graph):
    """Strongly connected components of more than one node, by Tarjan's algorithm without recursion."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in range(count):
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while node not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(graph[following])))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return found


def shortest(found, graph):
    """The shortest cycle within the components, as its nodes; None: there is none."""
    best = None
    for component in found:
        for start in component:
            before, queue = {start: None}, collections.deque([start])
            while queue:
                node = queue.popleft()
                if start in graph[node]:
                    path = [node]
                    while before[path[-1]] is not None:
                        path.append(before[path[-1]])
                    if best is None or len(path) < len(best):
                        best = path[::-1]
                    break
                for following in graph[node]:
                    if following in component and following not in before:
                        before[following] = node
                        queue.append(following)
            if best and len(best) == 2:
                return best
    return best


def appends(operations):
    partitions = collections.defaultdict(list)
    for one in operations:
        partitions[one["key"]].append(one)
    findings = []
    for of_key in partitions.values():
        partition = Partition(of_key)
        partition.lost()
        partition.cycles()
        findings += partition.findings
    return findings
