/* SPDX-License-Identifier: BSD-2-Clause */
/* Who does what: devices whenever they like, the user whatever it likes. */

#if DEVICES == 2
#define device_of(s) (1 + (s))
#else
#define device_of(s) 1
#endif

/* ---- Devices: the next work of some stream ---- */

#define device_may_run(n) \
    :: atomic { \
        can_run(n) -> \
        if \
        :: d_step { printf("work %d runs\n", n); carry_out(n) } \
        :: may_fail(n) -> d_step { printf("work %d fails\n", n); fail(n) } \
        fi \
    }

active proctype Devices()
{
end:
    do
    device_may_run(0)
    device_may_run(1)
    device_may_run(2)
#if OPS > 3
    device_may_run(3)
#endif
#if OPS > 4
    device_may_run(4)
#endif
    od
}

/* ---- The user. One process may stand for any number of threads: each call is one step ---- */

inline choose_range(range)
{
    if
    :: range = VIEW
#ifndef ONE_RANGE
    :: range = WHOLE
#endif
#ifdef PARTS
    :: range = 1
#endif
    fi
}

inline choose_mode(m)
{
    if
    :: m = READ
    :: m = WRITE
    :: m = READ_WRITE
    fi
}

/* Of the places that have the bytes. */
inline choose_source(prefer)
{
#ifdef ANY_SOURCE
    if
    :: prefer = 0
    :: prefer = 1
#if DEVICES == 2
    :: prefer = 2
#endif
    fi
#else
    prefer = 0
#endif
}

inline choose_stream(s)
{
    if
    :: s = 0
    :: s = 1
    fi
}

inline end_lease(n)
{
    printf("end: lease %d\n", n);
    if
    :: lease[n].stream == NO_STREAM -> end_on_host(n)
    :: else -> end_on_stream(n)
    fi
}

#define gives(range, seg, d) (!has(range, seg) || has(seen(range, seg), HOST) || \
    has(seen(range, seg), d))
#define gives_all(range, d) (gives(range, 0, d) && gives(range, 1, d))

/* ---- The end: at any moment. What was started has to come to its end all the same: where nothing
 * can go on any more this blocks, which is reported as an invalid end state ---- */

#define nothing_queued (work[0].is != QUEUED && work[1].is != QUEUED && work[2].is != QUEUED && \
    (OPS < 4 || work[OPS - 1].is != QUEUED))

#define user_has_memory (block[HOST] != NO_BLOCK && adopted[block[HOST]])

inline finish_all()
{
#ifdef CALLER
    atomic { caller_is_gone && unlocked -> skip };
#endif
    if
    :: atomic { nothing_queued -> d_step { audit(); release() } }
    :: d_step { !user_has_memory -> release() }
    fi;
    atomic { nothing_queued ->
        d_step {
            for (x : 0 .. BLOCKS - 1) {
                assert(state[x] == FREE)
            };
            x = 0
        } }
}

active proctype User()
{
    byte range, m, s, prefer, p, l;
    do
    :: atomic { unlocked ->
        choose_range(range); choose_mode(m); choose_stream(s); choose_source(prefer);
        d_step {
            p = device_of(s);
            printf("begin: place %d, mode %d, range %d, stream %d\n", p, m, range, s);
            begin(p, m, range, s, prefer);
            range = 0; m = 0; s = 0; prefer = 0; p = 0; l = 0
        } }
    :: atomic { unlocked && lease[0].open -> d_step { end_lease(0) } }
#if LEASES > 1
    :: atomic { unlocked && lease[1].open -> d_step { end_lease(1) } }
#endif
    :: atomic { unlocked ->
        choose_range(range); choose_stream(s); choose_source(prefer);
        d_step {
            p = device_of(s);
            printf("prefetch: place %d, range %d, stream %d\n", p, range, s);
            prefetch(p, range, s, prefer);
            range = 0; s = 0; prefer = 0; p = 0
        } }
    :: atomic { unlocked ->
        /* To the host: on a stream of the device that gives. */
        choose_range(range); choose_stream(s);
        d_step {
            prefer = device_of(s);
            printf("prefetch: place 0, range %d, stream %d\n", range, s);
            if
            :: gives_all(range, prefer) -> prefetch(HOST, range, s, prefer)
            :: else
            fi;
            range = 0; s = 0; prefer = 0
        } }
#ifndef NO_HOST
    :: atomic { unlocked ->
        choose_range(range); choose_mode(m); choose_source(prefer);
        d_step {
            printf("host: mode %d, range %d\n", m, range);
            use_host(m, range, prefer, false);
            set = 0; range = 0; m = 0; prefer = 0; l = 0
        } }
#endif
#ifdef HOST_LEASES
    :: atomic { unlocked ->
        choose_range(range); choose_mode(m); choose_source(prefer);
        d_step {
            printf("begin: place 0, mode %d, range %d\n", m, range);
            use_host(m, range, prefer, true);
            set = 0; range = 0; m = 0; prefer = 0; l = 0
        } }
#endif
#ifdef DROPS
    :: atomic { unlocked ->
        if
        :: p = 0
        :: p = 1
#if DEVICES == 2
        :: p = 2
#endif
        fi;
        d_step { printf("drop: place %d\n", p); drop(p); set = 0; p = 0 } }
#endif
#ifdef ADOPTS
    :: atomic { unlocked -> d_step { printf("adopt\n"); adopt(); set = 0 } }
#endif
    :: atomic { unlocked && !lease[0].open && !lease[LEASES - 1].open -> break }
    od;
    finish_all()
}

/* ---- Another thread, which waits within its calls ---- */

#ifdef CALLER
/* What a library would do that waits for leases instead of refusing. */
#ifdef WAIT_FOR_LEASE
#define lease_is_over (!lease[0].open && !lease[LEASES - 1].open)
#define busy_waits (!lease_is_over)
#else
#define lease_is_over true
#define busy_waits false
#endif

/* What a library would do that believes after a wait what it knew before. */
inline use_host_or_force(m_, range_, forced)
{
    if
    :: forced ->
        set = 0;
        reap();
        ensure_memory(HOST);
        if
        :: !failure && block[HOST] != NO_BLOCK -> use_host_now(m_, range_, HOST, false)
        :: else
        fi;
        tidy()
    :: else -> use_host(m_, range_, HOST, false)
    fi
}
active proctype Caller()
{
    byte range, m, l;
    bool waited;
    do
    :: atomic { unlocked ->
        choose_range(range); choose_mode(m);
        locked = true }
again:
        atomic {
            d_step {
#ifdef NO_RECHECK
                use_host_or_force(m, range, waited);
#else
                use_host(m, range, HOST, false);
#endif
                awaited = set;
                set = 0;
                l = 0
            };
            if
            :: awaited == 0 && !busy_waits -> locked = false; range = 0; m = 0; waited = false
            :: else ->
#ifndef KEEPS_LOCK
                locked = false;
#endif
                waited = true
            fi
        };
        if
        :: atomic { waited && awaited == 0 && lease_is_over ->
#ifndef KEEPS_LOCK
            unlocked;
#endif
            locked = true; goto again }
        :: atomic { !waited -> skip }
        fi
    :: atomic { unlocked -> caller_is_gone = true; break }
    od
}
#endif
