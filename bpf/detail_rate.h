/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sampling of single calls at a limited rate, with a stated probability. Used by the kernel side for
 * calls that are else only counted, and by the agent for those that it receives one by one.
 *
 * Each call is drawn independently. The probability of a draw depends on earlier calls only, never on
 * its own outcome. The sum of 1 / probability over the samples, plus the lost calls, is therefore an
 * unbiased estimate of the number of calls, whatever the rate does.
 *
 * Per period `most` samples are aimed at. A period begins with the probability that would have met
 * the aim in the one before. If the calls grow, the probability is halved at `most` samples and with
 * each further sixteenth, which lasts for thousands of times the aim. From twice `most` on, calls are
 * lost and counted: no period has more samples.
 * If the aim changes within a period, the probability is scaled and the period begins anew.
 */
#ifndef NT_BPF_DETAIL_RATE_H
#define NT_BPF_DETAIL_RATE_H

#define NT_DETAIL_EACH 0xffffffffU /* threshold: every call */

/* Zeroed: no call yet. Races between threads of one process change the rate slightly. */
struct nt_detail_rate {
	__u64 period; /* number of the current one */
	__u32 calls, sent; /* in it */
	__u32 threshold; /* of the next draw: the probability is (threshold + 1) / 2^32 */
	__u32 most; /* aimed at in the current period; 0: no call yet */
	__u64 seen, lost; /* calls so far; of them, those over the limit or without room */
};

enum nt_detail_draw {
	NT_DETAIL_PASS, /* not drawn */
	NT_DETAIL_TAKE, /* drawn with the returned threshold */
	NT_DETAIL_LOSE, /* over the limit, and counted */
};

static inline __attribute__((always_inline)) void nt_detail_begin(struct nt_detail_rate *rate,
								  __u64 period, __u32 most)
{
	const __u32 calls = rate->calls, before = rate->most;
	__u64 chances = (__u64)NT_DETAIL_EACH + 1;

	if (before && period == rate->period) /* the aim has changed */
		chances = ((__u64)rate->threshold + 1) * most / before;
	else if (before && period == rate->period + 1 && calls > most)
		chances = ((__u64)most << 32) / calls;
	if (!chances)
		chances = 1;
	rate->threshold = chances > NT_DETAIL_EACH ? NT_DETAIL_EACH : (__u32)(chances - 1);
	rate->most = most;
	rate->period = period;
	rate->calls = 0;
	rate->sent = 0;
}

/* most: 0 loses every call. random: uniform. *ret_threshold: of a drawn call. */
static inline __attribute__((always_inline)) enum nt_detail_draw
nt_detail_draw(struct nt_detail_rate *rate, __u64 period, __u32 most, __u32 random,
	       __u32 *ret_threshold)
{
	__u32 threshold, sent;

	__sync_fetch_and_add(&rate->seen, 1);
	if (!most) {
		__sync_fetch_and_add(&rate->lost, 1);
		return NT_DETAIL_LOSE;
	}
	if (most != rate->most || period != rate->period)
		nt_detail_begin(rate, period, most);
	rate->calls++;
	sent = rate->sent;
	if (sent >= 2 * most) {
		__sync_fetch_and_add(&rate->lost, 1);
		return NT_DETAIL_LOSE;
	}
	threshold = rate->threshold;
	if (random > threshold)
		return NT_DETAIL_PASS;
	rate->sent = ++sent;
	if (sent >= most && (sent - most) % (most / 16 + 1) == 0)
		rate->threshold = threshold >> 1;
	*ret_threshold = threshold;
	return NT_DETAIL_TAKE;
}

/* How many calls a sample of this threshold stands for. */
static inline __attribute__((always_inline)) __u64 nt_detail_stands_for(__u32 threshold)
{
	return 0x100000000ULL / ((__u64)threshold + 1);
}

#endif
