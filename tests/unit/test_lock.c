/* SPDX-License-Identifier: Apache-2.0 */
/* The data path lock: exclusion and visibility between threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lock.h"
#include "dies.h"

enum {
	THREADS = 4,
	ROUNDS = 20000,
};

/* Plain fields: TSan reports them if the lock does not order them. */
struct shared {
	struct lock lock;
	uint64_t a, b;
	uint64_t torn;
};

static void *add(void *arg)
{
	struct shared *s = arg;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		/* Both ways of taking it. */
		if (i % 4 || !lock_try(&s->lock))
			lock_take(&s->lock);
		s->torn += s->a != s->b;
		s->a++;
		s->b++;
		lock_drop(&s->lock);
	}
	return NULL;
}

static void test_exclusion(void **state)
{
	struct shared s = {.a = 0};
	pthread_t t[THREADS];
	unsigned i;

	lock_init(&s.lock);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add, &s), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(s.a, THREADS * ROUNDS);
	assert_int_equal(s.b, THREADS * ROUNDS);
	assert_int_equal(s.torn, 0);
}

static void test_try(void **state)
{
	struct lock l;

	lock_init(&l);
	assert_true(lock_try(&l));
	assert_false(lock_try(&l));
	lock_drop(&l);
	lock_take(&l);
	assert_false(lock_try(&l));
	lock_drop(&l);
	assert_true(lock_try(&l));
}

static void *wait_for(void *arg)
{
	struct shared *s = arg;

	lock_take(&s->lock);
	s->b = s->a;
	lock_drop(&s->lock);
	return NULL;
}

/* A holder that keeps it for 20 ms: the waiter sleeps and still gets it. */
static void test_long_holder(void **state)
{
	static const struct timespec hold = {.tv_nsec = 20000000};
	struct shared s = {.a = 0};
	pthread_t t;

	lock_init(&s.lock);
	lock_take(&s.lock);
	assert_int_equal(pthread_create(&t, NULL, wait_for, &s), 0);
	nanosleep(&hold, NULL);
	s.a = 5;
	lock_drop(&s.lock);
	pthread_join(t, NULL);
	assert_int_equal(s.b, 5);
}

struct patient {
	struct lock lock;
	long sleeps; /* of the thread that waited */
};

static void *wait_long(void *arg)
{
	struct patient *p = arg;
	struct rusage usage;

	lock_take(&p->lock);
	lock_drop(&p->lock);
	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	p->sleeps = usage.ru_nvcsw;
	return NULL;
}

/* Who waits long is woken, and does not look every few microseconds: that was
 * thousands of times here. */
static void test_long_wait(void **state)
{
	static const struct timespec hold = {.tv_nsec = 300000000};
	struct patient p = {.sleeps = 0};
	pthread_t t;

	lock_init(&p.lock);
	lock_take(&p.lock);
	assert_int_equal(pthread_create(&t, NULL, wait_long, &p), 0);
	nanosleep(&hold, NULL);
	lock_drop(&p.lock);
	pthread_join(t, NULL);
	assert_in_range(p.sleeps, 1, 1000);
}

static void assert_lock(void *arg)
{
	lock_assert_held(arg);
}

static void assert_mutex(void *arg)
{
	lock_assert_mutex_held(arg);
}

static void test_assert_held(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct lock l;

	lock_init(&l);
	assert_true(dies(assert_lock, &l));
	lock_take(&l);
	lock_assert_held(&l);
	lock_drop(&l);
	assert_true(dies(assert_lock, &l));
	assert_true(lock_try(&l));
	lock_assert_held(&l);
	lock_drop(&l);

	assert_true(dies(assert_mutex, &mutex));
	pthread_mutex_lock(&mutex);
	lock_assert_mutex_held(&mutex);
	pthread_mutex_unlock(&mutex);
	assert_true(dies(assert_mutex, &mutex));
}

#ifdef AQ_LOCK_HOLDER
static void *assert_elsewhere(void *arg)
{
	struct lock *l = arg;

	return dies(assert_lock, l) ? l : NULL;
}

/* Sanitized builds also know that it is another thread's. */
static void test_assert_whose(void **state)
{
	struct lock l;
	pthread_t t;
	void *died;

	lock_init(&l);
	lock_take(&l);
	assert_int_equal(pthread_create(&t, NULL, assert_elsewhere, &l), 0);
	pthread_join(t, &died);
	assert_non_null(died);
	lock_drop(&l);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusion),
		cmocka_unit_test(test_try),
		cmocka_unit_test(test_long_wait),
		cmocka_unit_test(test_long_holder),
		cmocka_unit_test(test_assert_held),
#ifdef AQ_LOCK_HOLDER
		cmocka_unit_test(test_assert_whose),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
