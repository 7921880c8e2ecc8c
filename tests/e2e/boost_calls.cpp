/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boost.Interprocess as two processes use it, SIDE 0 and 1: a map of strings in
 * managed memory, a mutex and a condition inside of it, a message queue both
 * ways, and a mutex with a name. Prints what both must find.
 */
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_condition.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/named_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace bi = boost::interprocess;

using memory = bi::managed_shared_memory;
using characters = bi::allocator<char, memory::segment_manager>;
using text = bi::basic_string<char, std::char_traits<char>, characters>;
using entry = std::pair<const long, text>;
using entries = bi::allocator<entry, memory::segment_manager>;
using table = bi::map<long, text, std::less<long>, entries>;
using lock = bi::scoped_lock<bi::interprocess_mutex>;

struct turns {
	bi::interprocess_mutex mutex;
	bi::interprocess_condition passed;
	long turn = 0, named = 0;
};

/* In turns, each side adds an entry; pointers of the tree go through both. */
static void fill(memory &m, long side, long count)
{
	turns *t = m.find_or_construct<turns>("turns")();
	table *all = m.find_or_construct<table>("table")(
		std::less<long>(), m.get_allocator<entry>());

	for (long i = 0; i < count; i++) {
		lock held(t->mutex);
		char word[64];

		while (t->turn % 2 != side)
			t->passed.wait(held);
		std::snprintf(word, sizeof(word),
			      "entry %ld, which has a text of some length",
			      t->turn);
		all->insert(
			entry(t->turn, text(word, m.get_allocator<char>())));
		t->turn++;
		t->passed.notify_one();
	}
}

/* What the one sends comes back from the other. */
static long talk(long side, long count)
{
	bi::message_queue to(bi::open_or_create, side ? "back" : "forth", 8,
			     sizeof(long));
	bi::message_queue from(bi::open_or_create, side ? "forth" : "back", 8,
			       sizeof(long));
	bi::message_queue::size_type got;
	unsigned priority;
	long sum = 0;

	for (long i = 0; i < count; i++) {
		long v = i * i;

		if (side == 0)
			to.send(&v, sizeof(v), 0);
		from.receive(&v, sizeof(v), got, priority);
		sum += got == sizeof(v) ? v : -1;
		if (side == 1)
			to.send(&v, sizeof(v), 0);
	}
	return sum;
}

int main(int argc, char **argv)
{
	long side = argc == 3 ? std::atol(argv[1]) : 0;
	long count = argc == 3 ? std::atol(argv[2]) : 0;
	memory m(bi::open_or_create, "managed", 1 << 20);
	bi::named_mutex named(bi::open_or_create, "named");
	long sum, length = 0;

	fill(m, side, count);
	sum = talk(side, count);
	turns *t = m.find<turns>("turns").first;
	for (long i = 0; i < count; i++) {
		bi::scoped_lock<bi::named_mutex> held(named);

		t->named++;
	}
	{
		lock held(t->mutex); /* both have come so far */

		t->turn++;
		t->passed.notify_all();
		while (t->turn < 2 * count + 2)
			t->passed.wait(held);
		for (const entry &e : *m.find<table>("table").first)
			length += e.first * (long)e.second.size();
	}
	std::printf("%ld entries %ld, messages %ld, named %ld, sound %d\n",
		    (long)m.find<table>("table").first->size(), length, sum,
		    t->named, (int)m.check_sanity());
	if (side == 0) {
		bi::shared_memory_object::remove("managed");
		bi::message_queue::remove("forth");
		bi::message_queue::remove("back");
		bi::named_mutex::remove("named");
	}
	return 0;
}
