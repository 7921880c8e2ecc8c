/* SPDX-License-Identifier: Apache-2.0 */
/* watch_crowd PATH WATCHES ITEMS: watches a queue many times over and never
 * reads, then puts and gets items; one more watch is told of the puts, each
 * once, or how many it has lost. */
#include <aquifer/elastic.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, \
				#condition, aq_last_error());          \
			exit(1);                                       \
		}                                                      \
	} while (0)

static unsigned long long hear(struct aq_watch *w)
{
	unsigned long long told = 0;
	struct aq_event e;

	while (aq_watch_next(w, &e, 0) == 0) {
		REQUIRE(e.kind == AQ_EVENT_PUT || e.kind == AQ_EVENT_LOST);
		told += e.kind == AQ_EVENT_LOST ? e.value : 1;
	}
	return told;
}

int main(int argc, char **argv)
{
	struct aq_watch_options only_puts = {.events = 1u << AQ_EVENT_PUT};
	unsigned long long told = 0;
	struct aq_watch **crowd, *reads;
	struct aq_queue *q;
	struct aq_rack *rack;
	struct aq_event e;
	unsigned watches, items;
	char item[64];
	size_t len;

	if (argc != 4)
		return 2;
	watches = (unsigned)atoi(argv[2]);
	items = (unsigned)atoi(argv[3]);
	crowd = calloc(watches, sizeof(*crowd));
	REQUIRE(crowd);
	REQUIRE(aq_rack_open(NULL, &rack) == 0);
	REQUIRE(aq_queue_open(rack, argv[1], NULL, &q) == 0);
	while (aq_queue_get(q, item, sizeof(item), &len, 0) == 0)
		;
	for (unsigned i = 0; i < watches; i++)
		REQUIRE(aq_watch_open(rack, argv[1], NULL, &crowd[i]) == 0);
	REQUIRE(aq_watch_open(rack, argv[1], &only_puts, &reads) == 0);
	for (unsigned i = 0; i < items; i++) {
		REQUIRE(aq_queue_put(q, &i, sizeof(i), 0) == 0);
		REQUIRE(aq_queue_get(q, item, sizeof(item), &len, 0) == 0);
		if (i % 100 == 99)
			told += hear(reads);
	}
	/* Those that are on their way. */
	while (told < items) {
		REQUIRE(aq_watch_next(reads, &e, 60000) == 0);
		told += e.kind == AQ_EVENT_LOST ? e.value : 1;
	}
	REQUIRE(told == items);
	/* One of the others wakes up. */
	REQUIRE(aq_watch_next(crowd[0], &e, 60000) == 0);
	for (unsigned i = 0; i < watches; i++)
		aq_watch_close(crowd[i]);
	free(crowd);
	aq_watch_close(reads);
	aq_queue_close(q);
	aq_rack_close(rack);
	printf("%u items past %u watches that never read\n", items, watches);
	return 0;
}
