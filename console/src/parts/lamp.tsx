/** The lamp. */
export function Lamp() {
  return (
    <svg class="lamp" viewBox="0 0 32 32" aria-hidden="true">
      <path class="iron" d="M16 3v3M11 7h10l2 4v10l-3 4h-8l-3-4V11zM13 28h6" />
      <path
        class="flame"
        d="M16 11c2.6 2.6 3.6 4.4 3.6 6.400a3.6 3.6 0 0 1-7.2 0c0-2 1-3.8 3.6-6.400z"
      />
    </svg>
  );
}
